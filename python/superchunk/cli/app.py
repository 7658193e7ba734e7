"""The list of commands, and the exit codes of their errors.

Exit codes: 0 success, 1 failure (one line on stderr), 2 wrong command line, 3 a verified frame has no
checksums that prove it, 4 a verified file is not a frame, 129 the terminal closed, 130 interrupted, 143 terminated.
If the reader of the output ends early (``superchunk cat … | head``), the command succeeds.

Source: docs/cli.md, section "Exit codes".
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

import click

import superchunk
from superchunk.cli.bench import bench
from superchunk.cli.cat import cat
from superchunk.cli.codecs import list_codecs
from superchunk.cli.compress import compress
from superchunk.cli.convert import convert
from superchunk.cli.decompress import decompress
from superchunk.cli.errors import EXPECTED, describe, making
from superchunk.cli.info import info
from superchunk.cli.repair import compact as compact_frame
from superchunk.cli.repair import repair
from superchunk.cli.signals import termination_unwinds
from superchunk.cli.verify import verify
from superchunk.cli.view import view

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["run"]

INTERRUPTED = 130


class _Commands(click.Group):
    """A group whose commands end quietly when the reader of stdout has gone."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and swallow a broken pipe before click turns it into exit code 1."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The interpreter flushes stdout once more when it ends; let that go nowhere.
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, sys.stdout.fileno())
            return None
        return result


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(superchunk.__version__, prog_name="superchunk")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Inspect, create, read, convert, verify and repair Blosc2 frames."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (
    info,
    compress,
    decompress,
    cat,
    list_codecs,
    bench,
    verify,
    repair,
    convert,
    compact_frame,
    view,
):
    commands.add_command(_command)


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print what the library warns the user of as errors are printed, each text once and without lines of source."""
    shown = set[str]()

    def show(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
        if category is UserWarning:
            if str(message) not in shown:
                click.echo(f"superchunk: {message}", err=True)
            shown.add(str(message))
        else:
            usual(message, category, *where, **more)  # type: ignore[arg-type]

    with warnings.catch_warnings():
        usual, warnings.showwarning = warnings.showwarning, show
        yield


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code.

    Parameters
    ----------
    arguments
        The command line without the program's name; None takes it from `sys.argv`.

    """
    try:
        with termination_unwinds(), making("standard output"), _warnings_in_one_line():
            result = commands.main(
                args=None if arguments is None else list(arguments),
                prog_name="superchunk",
                standalone_mode=False,
            )
    except click.Abort:
        click.echo("superchunk: interrupted", err=True)
        return INTERRUPTED
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "superchunk"
        click.echo(f"superchunk: {describe(error)} (see {where} --help)", err=True)
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"superchunk: {describe(error)}", err=True)
        return error.exit_code
    except EXPECTED as error:
        click.echo(f"superchunk: {describe(error)}", err=True)
        return 1
    return result if isinstance(result, int) else 0
