"""A page that shows a model as it translates: `tfmann play`.

Small trained models of an invented language come with tfmann; --model adds one of yours. The page
shows each word as it is produced, where each head reads and writes, and what another word would
change. It is served to this machine only, unless --host says otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tfmann.cli.model_flags import add_settings, given_settings
from tfmann.cli.serve import add_address
from tfmann.config.search import WORD_MEMORY_SETTINGS
from tfmann.errors import UsageError, UserError, print_message, run_command
from tfmann.serving import server
from tfmann.utils.arguments import ArgumentParser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    args = _parser().parse_args(argv)
    return run_command(lambda: _run(args))


def _run(args: argparse.Namespace) -> None:
    server.require_extra("play")
    from tfmann.play import library

    settings = given_settings(args, WORD_MEMORY_SETTINGS)
    if settings and not args.model:
        raise UsageError(
            f"--{next(iter(settings))} is for the models of --model, and there is none"
        )
    shipped = library.shipped()
    mine = library.of_runs(args.model, [entry.name for entry in shipped], settings)
    entries = [*mine, *shipped]
    if not entries:
        raise UserError("no models come with this installation: give one of yours with --model=DIR")
    with server.bind(args.host, args.port) as listener:
        # TensorFlow is imported with the first model, when the page is open already.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        from tfmann.play import pages

        app = pages.make_app(library.Library(entries), args.host, print_message)
        print_message(f"open {server.url(listener)} in a browser; Ctrl-C ends this")
        if args.open:
            import webbrowser

            webbrowser.open(server.url(listener))
        server.serve(app, listener, _stopping)


def _stopping() -> None:
    print_message("stopping after what is being computed; Ctrl-C again ends this at once")


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog="tfmann play",
        description=str(__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model", action="append", default=[], help="folder of a run; may be given repeatedly"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    add_address(parser)
    add_settings(parser, WORD_MEMORY_SETTINGS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
