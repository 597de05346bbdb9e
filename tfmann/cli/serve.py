"""A server that translates over HTTP with a trained model: `tfmann serve --model=DIR`.

POST /translate takes and returns JSON; simultaneous requests are translated in one batch. GET
/health and GET /metrics report its state. SIGTERM and Ctrl-C stop it after it has answered the
requests that it has accepted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tfmann import config
from tfmann.cli.model_flags import add_model, add_settings, given_settings
from tfmann.config import HParams
from tfmann.config.search import SHORTLIST_SETTINGS, WORD_MEMORY_SETTINGS
from tfmann.data import lexicon, memory_files
from tfmann.errors import UsageError, print_message, run_command
from tfmann.serving import server
from tfmann.serving.requests import Limits
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.tensorflow_import import import_tensorflow

_EXAMPLE = """\
example:
  tfmann serve --model=runs/mine --port=8000
  curl -H 'Content-Type: application/json' -d '{"lines": ["ein mann schläft ."]}' \\
      http://127.0.0.1:8000/translate"""
_SETTINGS = ("infer_mode", "beam_width", "length_penalty_weight", "tgt_max_len_infer",
             "infer_batch_size", "replace_unk", *WORD_MEMORY_SETTINGS,
             *SHORTLIST_SETTINGS)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    args = _parser().parse_args(argv)
    return run_command(lambda: _run(args))


def _run(args: argparse.Namespace) -> None:
    server.require_extra("serve")
    limits = _limits(args)
    settings = given_settings(args, _SETTINGS)
    hparams = _hparams(args.model, settings)
    lexicon.require(hparams, args.model)
    memory_files.require(hparams)
    listener = server.bind(args.host, args.port)
    with listener:
        import_tensorflow()
        from tfmann import api
        from tfmann.serving import app
        from tfmann.serving.service import Service

        model = api.load(args.model, args.ckpt, print_message, **settings)
        service = Service(model, limits)
        service.engine.warm_up()

        def stop() -> None:
            service.stopping = True
            print_message("stopping after the requests that have been accepted")

        print_message(
            f"serving on {server.url(listener)}: POST /translate, GET /health, GET /metrics"
        )
        server.serve(app.make_app(service, args.host, print_message), listener, stop)


def _hparams(model: str, settings: Mapping[str, Any]) -> HParams:
    """Returns the settings of a model; refuses one of `settings` that no request would read."""
    hparams = config.settings_of_model(model, settings)
    # a request that asks for a beam gives its width, and finds the rest here
    of_requests = hparams.replace(infer_mode="beam_search", num_translations_per_input=1)
    for name in settings:
        config.refuse_idle([name], hparams if name == "beam_width" else of_requests)
    return hparams


def add_address(parser: argparse.ArgumentParser) -> None:
    """Adds `--host` and `--port`."""
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=_port, default=8000, help="its port; 0 takes a free one (%(default)s)"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 65535, not {text!r}")
    return int(text)


def _limits(args: argparse.Namespace) -> Limits:
    limits = Limits(
        lines=args.max_lines,
        waiting_lines=args.max_waiting_lines,
        seconds=args.max_seconds,
        sessions=args.max_sessions,
        session_seconds=60.0 * args.session_minutes,
    )
    for name in ("lines", "waiting_lines", "seconds", "sessions"):
        if not getattr(limits, name) > 0:  # nor is NaN
            raise UsageError(f"--max_{name}: expected more than 0")
    if not limits.session_seconds > 0:
        raise UsageError("--session_minutes: expected more than 0")
    return limits


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog="tfmann serve",
        description=str(__doc__),
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    add_address(parser)
    limits: dict[str, tuple[Any, Any, str]] = {
        "max_lines": (int, Limits().lines, "lines of one request"),
        "max_waiting_lines": (int, Limits().waiting_lines, "lines of all requests that wait"),
        "max_seconds": (float, Limits().seconds, "seconds until an answer"),
        "max_sessions": (int, Limits().sessions, "documents that continue between requests"),
        "session_minutes": (float, 30.0, "minutes until an unused one expires"),
    }
    for name, (kind, default, text) in limits.items():
        parser.add_argument(
            f"--{name}", type=kind, default=default, help=f"{text} (default: %(default)s)"
        )
    add_settings(parser, _SETTINGS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
