"""What an audit would do, and about how long it would take, without doing it."""

from privaudit import _examine, _synthetic
from privaudit._files import Files
from privaudit._returned import require_text_back
from privaudit._sample import draw_sample
from privaudit._settings import Settings
from privaudit._target import Target


def outlook(
    files: Files, settings: Settings, *, target: Target | None = None, reference: Target | None = None
) -> str:
    """Return in words what would be asked, of whom, and about how long that takes; a little is asked for it.

    Args:
        files: from `read_files`.
        settings: of the audit.
        target, reference: as `examine` takes them; without a model, of the synthetic texts in `files`.

    Raises:
        BadRecords: too few notes can be read.
        UnsupportedModel: a tokenizer loses most of the notes.
    """
    sample = draw_sample(files, [*filter(None, [target, reference])], settings)
    asked = f"{len(set(sample.patients)):,} patients would be asked about"
    if target is None:
        texts = files.synthetic.texts
        about = f"{len(sample.texts):,} notes compared with {len(texts):,} synthetic texts"
        return f"{asked}, {about}; {_synthetic.work_ahead(texts, sample, settings)[1]}"
    losses = [require_text_back(model, sample.notes) for model in (target, reference) if model is not None]
    return "; ".join(
        filter(
            None,
            [
                asked,
                *(loss.rstrip(".") for loss in losses),
                _examine.work_ahead(target, reference, sample, settings),
            ],
        )
    )
