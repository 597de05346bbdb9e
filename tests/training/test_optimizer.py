"""Learning rates and updates of the weights against the oracles, clipping included."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from oracles import objective

from tfmann.config import HParams
from tfmann.training import checkpoint, trainer
from tfmann.training.objective import sum_loss
from tfmann.training.optimizer import learning_rate
from tfmann.training.train_state import TrainState
from tfmann.training.train_step import TrainStep

SCHEMES = ["", "luong5", "luong10", "luong234"]
SMOOTH = ["inverse_sqrt", "cosine"]
BATCHES = [[(5, 4), (1, 6), (3, 1)], [(2, 2)], [(4, 3), (6, 5), (0, 2), (7, 1)]]
UPDATES = len(BATCHES)


def edges(steps):
    """Steps around which something may change, and some others."""
    stream = np.random.default_rng(steps)
    tenths = [steps * part // 60 + near for part in range(61) for near in (-1, 0, 1)]
    return sorted({s for s in [*tenths, *stream.integers(0, steps, 50)] if 0 <= s < steps + 2})


@pytest.mark.parametrize("warmup", [0, 1, 40, 8000])
@pytest.mark.parametrize("rise", ["t2t", "linear"])
@pytest.mark.parametrize("scheme", SCHEMES + SMOOTH)
def test_learning_rate_equals_the_oracle(scheme, rise, warmup):
    lengths = [1, 2, 3, 7, 10, 29, 100, 999, 1000, 12000, 12345, 100_001, 340_000]
    for steps in lengths:
        h = HParams(
            learning_rate=0.7, decay_scheme=scheme, warmup_steps=warmup, num_train_steps=steps,
            warmup_scheme=rise,
        )  # fmt: skip
        for step in edges(steps):
            expected = objective.learning_rate(int(step), 0.7, warmup, scheme, steps, rise)
            assert learning_rate(h, int(step)) == pytest.approx(expected, rel=1e-9), (steps, step)


@pytest.mark.parametrize("scheme", SCHEMES[1:])
def test_decay_begins_at_the_same_step_for_every_length_of_run(scheme):
    """The beginning is a whole number of steps, rounded down as the oracle rounds it."""
    numerator, denominator, _ = objective.DECAY_SCHEMES[scheme]
    for steps in range(10, 3000):
        h = HParams(decay_scheme=scheme, num_train_steps=steps)
        start = steps * numerator // denominator
        interval = max(1, (steps - start) // objective.DECAY_SCHEMES[scheme][2])
        for step in (start - 1, start + interval - 1, start + interval):
            expected = objective.learning_rate(step, 1.0, 0, scheme, steps)
            assert learning_rate(h, step) == expected, (steps, step)


def test_the_schedules_values():
    """By hand: 1% at first, then all of it; the last of ten halvings in the last tenth."""
    h = HParams(learning_rate=2.0, warmup_steps=100, num_train_steps=1000)
    rates = [learning_rate(h, step) for step in (0, 50, 100, 999)]
    assert rates == pytest.approx([0.02, 0.2, 2.0, 2.0])
    h = HParams(learning_rate=1.0, decay_scheme="luong10", num_train_steps=1000)
    rates = [learning_rate(h, step) for step in (499, 549, 550, 600, 999)]
    assert rates == [1.0, 1.0, 0.5, 0.25, 0.5**9]


def test_the_smooth_schedules_values():
    """By hand: the greatest rate at the warm-up's end; half of it where the schedule halves it."""
    h = HParams(
        learning_rate=2.0, warmup_scheme="linear", warmup_steps=100, num_train_steps=1100,
        decay_scheme="inverse_sqrt",
    )  # fmt: skip
    rates = [learning_rate(h, step) for step in (0, 49, 99, 399)]
    assert rates == pytest.approx([0.02, 1.0, 2.0, 1.0])
    h = h.replace(decay_scheme="cosine")
    rates = [learning_rate(h, step) for step in (99, 100, 600, 1100, 5000)]
    assert rates == pytest.approx([2.0, 2.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("scheme", ["", "luong5", "luong10", "luong234", "cosine", "inverse_sqrt"])
def test_the_rate_stays_after_the_decay_steps(scheme):
    """A longer run with decay_steps begins as the shorter run, and goes on at its last rate."""
    short = HParams(learning_rate=1.0, decay_scheme=scheme, warmup_steps=20, num_train_steps=500)
    longer = short.replace(num_train_steps=700, decay_steps=500)
    for step in (0, 19, 20, 250, 333, 400, 499, 500):
        assert learning_rate(longer, step) == learning_rate(short, step), step
    assert learning_rate(longer, 699) == learning_rate(longer, 500)


@pytest.mark.parametrize("optimizer,rate", [("sgd", 1.0), ("adam", 0.001), ("adadelta", 1.0)])
def test_a_rate_that_is_not_given_follows_the_optimizer(optimizer, rate):
    assert learning_rate(HParams(optimizer=optimizer), 0) == rate
    assert learning_rate(HParams(optimizer=optimizer, learning_rate=0.5), 0) == 0.5
    assert learning_rate(HParams(optimizer=optimizer, learning_rate=0.0), 0) == 0.0


def test_a_dev_score_without_progress_halves_the_rate():
    h = HParams(learning_rate=1.0, decay_scheme="plateau", plateau_patience=2)
    run, log = TrainState(), []
    for stale in (0, 1, 2, 3, 4, 0, 1):
        run.stale_evaluations = stale
        trainer._halve_rate(h, run, log.append)
    assert run.rate_halvings == len(log) == 2
    assert learning_rate(h, 5, run.rate_halvings) == 0.25
    assert learning_rate(h.replace(decay_scheme=""), 5, run.rate_halvings) == 1.0


def test_a_run_that_ends_where_the_rate_is_halved_goes_on_with_the_lower_rate():
    h = HParams(decay_scheme="plateau", plateau_patience=2, early_stopping_patience=4)
    run, log = TrainState(step=7, stale_evaluations=4), []
    trainer._halve_rate(h, run, log.append)
    assert run.rate_halvings == 1 and not log, "the run has ended, unless it is given more patience"


def test_an_evaluation_writes_one_checkpoint_which_has_what_it_found(tmp_path, monkeypatch):
    written, shown = [], []
    write = checkpoint.write
    monkeypatch.setattr(checkpoint, "write", lambda *args: (written.append(args), write(*args)))
    h = HParams(decay_scheme="plateau", plateau_patience=1)
    learner = SimpleNamespace(
        hparams=h, workers=SimpleNamespace(chief=True, broadcast=float), cache_arrays=dict,
        weight_arrays=lambda: {"a": np.zeros(2)}, optimizer_arrays=lambda: {"m": np.ones(2)},
    )  # fmt: skip
    hooks = trainer.Hooks(print, None, lambda state: 3.0, None, shown.append)
    state = TrainState(step=2, best_bleu=4.0, best_step=1)
    trainer._evaluate_saved(learner, state, str(tmp_path), hooks)
    saved = checkpoint.read_state(str(tmp_path / "step-00000002"))
    assert len(written) == 1 and written[0][3]["between"] and not saved["between"]
    assert (saved["stale_evaluations"], saved["rate_halvings"], shown) == (1, 1, [2])


def test_a_checkpoint_from_before_the_plateau_is_read():
    values = TrainState(step=7).as_dict()
    del values["rate_halvings"]
    assert TrainState.from_dict(values) == TrainState(step=7)


class Replay:
    """Makes the same updates in NumPy, from gradients that a tape takes before each of them."""

    def __init__(self, learner):
        self.learner, self.hparams = learner, learner.hparams
        self.weights = {v.name: v.numpy().astype(np.float64) for v in learner.variables}
        self.slots = {name: (0.0, 0.0) for name in self.weights}
        self.updates = 0

    def gradients(self, batch):
        """Clipped gradients by name, and the norm before."""
        model = self.learner.model
        with tf.GradientTape() as tape:
            loss = sum_loss(model, batch[:5], None, tf.float32).total
        gradients = tape.gradient(loss, self.learner.variables)
        arrays = [tf.convert_to_tensor(g).numpy().astype(np.float64) for g in gradients]
        by_sentences = self.hparams.loss_normalization == "sentences"
        divisor = len(batch.source) if by_sentences else batch.target_length.sum()
        arrays = [array / divisor for array in arrays]
        limit = self.hparams.max_gradient_norm or np.inf
        arrays, norm = objective.clip_by_global_norm(arrays, limit)
        return dict(zip(self.weights, arrays)), norm

    def update(self, batch, rate):
        """One update by the oracle; returns the gradient's norm."""
        gradients, norm = self.gradients(batch)
        self.updates += 1
        for name, gradient in gradients.items():
            weight, slots = self.weights[name], self.slots[name]
            if self.hparams.optimizer == "sgd":
                weight = objective.sgd_step(weight, gradient, rate)
            elif self.hparams.optimizer == "adam":
                weight, *slots = objective.adam_step(weight, gradient, *slots, self.updates, rate)
            else:
                weight, *slots = objective.adadelta_step(
                    weight, gradient, *slots, rate,
                    self.hparams.adadelta_rho, self.hparams.adadelta_epsilon,
                )  # fmt: skip
            self.weights[name], self.slots[name] = weight, tuple(slots)
        return norm


# settings and the rates of the three updates
CASES = {
    "sgd": ({"optimizer": "sgd", "max_gradient_norm": 0.0}, [1.0, 0.5, 0.25]),
    "sgd-clipped": (
        {"optimizer": "sgd", "max_gradient_norm": 0.05, "loss_normalization": "tokens"},
        [1.0, 3.0, 0.5],
    ),
    "adam": (
        {"optimizer": "adam", "max_gradient_norm": 0.0, "loss_normalization": "tokens"},
        [0.01, 0.02, 0.005],
    ),
    "adam-clipped": ({"optimizer": "adam", "max_gradient_norm": 0.05}, [0.01, 0.02, 0.005]),
    "adadelta": ({"optimizer": "adadelta", "max_gradient_norm": 1e3}, [1.0, 1.0, 0.5]),
    "adadelta-clipped": (
        {
            "optimizer": "adadelta",
            "adadelta_rho": 0.8,
            "adadelta_epsilon": 1e-3,
            "max_gradient_norm": 0.05,
        },
        [1.0, 0.5, 1.0],
    ),
}


@pytest.mark.quick("sgd-clipped", "adam-clipped", "adadelta-clipped")
@pytest.mark.parametrize("case", list(CASES))
def test_updates_equal_the_oracle(case):
    changes, rates = CASES[case]
    h = small_models.hparams("luong", num_layers=1, encoder_type="uni", init_weight=0.3, **changes)
    learner = TrainStep(h, small_models.SOURCE_SIZE, small_models.TARGET_SIZE)
    start = {v.name: v.numpy() for v in learner.variables}
    replay = Replay(learner)
    for step, lengths in enumerate(BATCHES):
        batch = small_models.batch(lengths, seed=step)
        norm = replay.update(batch, rates[step])
        update = learner.update(batch, step, rates[step])
        assert float(update.gradient_norm) == pytest.approx(norm, rel=1e-4)
        assert 0.05 < norm < 1e3  # the small limit clips, the great one does not
        assert int(update.words) == batch.words
    for variable in learner.variables:
        moved = np.abs(variable.numpy() - start[variable.name])
        error = np.abs(variable.numpy() - replay.weights[variable.name])
        assert moved.max() > 1e-5, variable.name
        # Adam divides gradients near zero by their size, and so enlarges their rounding
        assert error.max() < (5e-6 if h.optimizer == "adam" else 1e-6), variable.name
