"""Bodies of requests that are read, or refused in one message."""

import pytest

from tfmann.serving.requests import Limits, RequestError, read_translate


def test_values_of_any_depth_are_refused():
    """A value that the reader just takes may be too deep to be written into the message."""
    for depth in range(400, 1200):
        body = '{"lines": ' + '{"a": ' * depth + "1" + "}" * (depth + 1)
        with pytest.raises(RequestError) as refused:
            read_translate(body.encode(), Limits(), True)
        assert refused.value.status == 422 and len(str(refused.value)) < 200
