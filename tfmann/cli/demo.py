"""The main job on a synthetic corpus, in a few minutes: `tfmann demo`.

Writes the corpus, trains a translator whose attention is addressed like the memory of a neural
Turing machine, scores it, and draws its attention.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from tfmann.errors import run_command
from tfmann.utils import resources
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.tensorflow_import import import_tensorflow

_STEPS = 1500  # two minutes; the number in the settings file is for the slowest cell
GOAL = 90.0  # BLEU on the synthetic test set


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo; returns 0 if the model reached the goal."""
    parser = ArgumentParser(prog="tfmann demo", description=str(__doc__))
    parser.add_argument("--out_dir", default="runs/demo", help="folder of the demo")
    out_dir = parser.parse_args(argv).out_dir
    return run_command(lambda: _demo(out_dir), "interrupted: the same command continues from here")


def _demo(out_dir: str) -> int:
    import_tensorflow()
    bleu = _train(out_dir)
    _show(out_dir)
    if bleu < GOAL:
        print(f"\nBLEU {bleu:.2f} is below {GOAL:.0f}: something is wrong here.")
        return 1
    _print_next_steps(out_dir, bleu)
    return 0


def _train(out_dir: str) -> float:
    from tfmann import config, synthetic
    from tfmann.cli import train

    corpus = os.path.join(out_dir, "corpus")
    if not os.path.exists(os.path.join(corpus, "vocab.tgt")):
        print(f"writing a synthetic corpus to {corpus}: an invented language, invented sentences")
        synthetic.write_corpus(corpus, train=10000, dev=500, test=500, seed=1)
    prefixes = {f"{name}_prefix": os.path.join(corpus, name) for name in ("train", "dev", "test")}
    vocabulary = os.path.join(corpus, "vocab")
    settings = {**prefixes, "vocab_prefix": vocabulary, "num_train_steps": _STEPS}
    results = train.train(
        config.make(settings, str(resources.shipped("hparams", "tiny", "ntm_attention.json"))),
        os.path.join(out_dir, "model"),
        log=lambda message: print(message, flush=True),
    )
    return results["best"]["test"][0]["value"]


def _show(out_dir: str) -> None:
    """Prints translations of test sentences and draws the addresses of one."""
    import tfmann
    from tfmann.data.text_files import iter_lines
    from tfmann.visualization import attention_figures, head_figures, image_files

    model = tfmann.load(os.path.join(out_dir, "model"))
    sources = list(iter_lines(os.path.join(out_dir, "corpus", "test.src")))
    references = list(iter_lines(os.path.join(out_dir, "corpus", "test.tgt")))
    print("\nfive sentences of the synthetic test set:")
    n_best_lists = list(model.translate(sources[:5], with_attention=True))
    for source, reference, (best, *_) in zip(sources, references, n_best_lists):
        print(f"  source       {source}\n  reference    {reference}\n  translation  {best.text}\n")
    pairs = [(translations[0], source) for translations, source in zip(n_best_lists, sources)]
    longest, source = max(pairs, key=lambda pair: len(pair[0].tokens))
    title = "NTM-style attention"
    figure = attention_figures.attention_figure(
        longest.attention, longest.source_tokens, longest.tokens, title=title
    )
    image_files.save_figure(figure, os.path.join(out_dir, "attention.png"))
    for head, figure in head_figures.head_figures(model.trace((source, longest.text)), title):
        image_files.save_figure(figure, os.path.join(out_dir, f"{head}.png"))


def _print_next_steps(out_dir: str, bleu: float) -> None:
    tfmann = _command("tfmann")
    print(
        f"""BLEU {bleu:.2f} on the synthetic test set. Where to look next:
  {out_dir}/attention.png
      where the decoder looked, word by word
  {out_dir}/read_head_0.png
      how it got there: content, gate, shift, sharpening
  {_command("tensorboard")} --logdir {out_dir}
      curves, sample translations, attention over time
  echo "..." | {tfmann} translate --model={out_dir}/model
      more translations; {out_dir}/corpus/test.src has sentences
  {tfmann} reproduce vi-en
      the same model on real text (IWSLT'15)
  {tfmann} settings
      the settings of all models
  {tfmann} -h
      all commands"""
    )


def _command(name: str) -> str:
    """Returns how to call a command of this Python: by name if the shell finds it, else by path."""
    path = os.path.join(os.path.dirname(sys.executable), name)
    return name if shutil.which(name) == path else os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
