"""Arrays of a checkpoint as the variables of a model: all of them, or those that match."""

import numpy as np
import pytest

from tfmann.errors import UserError
from tfmann.training import named_variables


class Variable:
    """The part of a TensorFlow variable that `assign` needs."""

    def __init__(self, name, value):
        self.name, self.value = f"{name}:0", np.asarray(value)
        self.shape = self.value.shape

    def assign(self, value):
        self.value = np.array(value)


def variables(**values):
    return [Variable(name, value) for name, value in values.items()]


def test_assign_sets_everything():
    model = variables(a=np.zeros([2, 3]), b=np.zeros([]))
    named_variables.assign(model, {"a": np.ones([2, 3]), "b": np.float32(4)}, "there")
    assert np.all(model[0].value == 1) and model[1].value == 4


@pytest.mark.parametrize(
    "saved, words",
    [
        ({"a": np.ones([2, 3])}, "b is missing there"),
        ({"a": np.ones([2, 3]), "b": np.ones([]), "c": np.ones([1])}, "c is not in this model"),
        ({"a": np.ones([3, 2]), "b": np.ones([])}, r"a is \[3, 2\] there and \[2, 3\] here"),
        ({"a": np.ones([2, 3]), "b": np.ones([1])}, r"b is \[1\] there and \[\] here"),
        ({f"x{i}": np.ones([1]) for i in range(9)}, r"a is missing there; .*and 8 more"),
    ],
)
def test_assign_refuses_another_models_and_sets_nothing(saved, words):
    model = variables(a=np.zeros([2, 3]), b=np.zeros([]))
    with pytest.raises(UserError, match=f"there is another model's: .*{words}"):
        named_variables.assign(model, saved, "there")
    assert not any(np.any(variable.value) for variable in model)


def test_assign_fitting_sets_what_fits_and_lists_the_rest():
    model = variables(a=np.zeros([2]), b=np.zeros([3]), new=np.zeros([4]))
    saved = {"a": np.ones([2]), "b": np.ones([3]), "gone": np.ones([5])}
    matched, fresh = named_variables.assign_matching(model, saved, "there")
    assert (matched, fresh) == (["a", "b"], ["new"])
    assert [float(variable.value.sum()) for variable in model] == [2, 3, 0]


@pytest.mark.parametrize(
    "saved, words",
    [
        ({"a": np.ones([2]), "b": np.ones([4])}, r"b is \[4\] there and \[3\] here"),
        ({"other": np.ones([2])}, "no weight there has a name of this model"),
        ({}, "no weight there"),
    ],
)
def test_assign_fitting_refuses_what_cannot_fit_and_sets_nothing(saved, words):
    model = variables(a=np.zeros([2]), b=np.zeros([3]))
    with pytest.raises(UserError, match=f"there cannot start this model: {words}"):
        named_variables.assign_matching(model, saved, "there")
    assert not any(np.any(variable.value) for variable in model)


def test_two_variables_of_one_name_are_a_mistake_of_ours():
    with pytest.raises(ValueError, match="same name: a;"):
        named_variables.by_name([*variables(a=1), *variables(a=2)])
