"""Apply a patch file to one environment's packages, or say that it does not fit."""

import os
from pathlib import Path

import whatthepatch

from casebook.errors import EnvironmentFailed


def apply(patch_file: Path, folder: Path) -> list[Path]:
    """Apply a unified diff with a/ and b/ prefixes to the files under `folder`; all or nothing.

    Every context line must be where the patch says. Returns the files that were changed: new ones,
    since the old may be hard links into an installer's cache. Raises EnvironmentFailed.
    """
    texts = {}
    for diff in whatthepatch.parse_patch(patch_file.read_text()):
        if not diff.header or not diff.changes:
            continue
        target = folder / diff.header.new_path.removeprefix("b/")
        try:
            text = target.read_text()
            lines = whatthepatch.apply_diff(diff, text)
        except (OSError, whatthepatch.exceptions.HunkApplyException) as error:
            raise EnvironmentFailed(
                f"{patch_file.name} does not apply to {target.name}: {error}. The patch and the "
                "version in the lock belong together: change both or neither."
            ) from error
        texts[target] = "\n".join(lines) + "\n"
    if not texts:
        raise EnvironmentFailed(f"{patch_file.name} holds no change.")
    for target, text in texts.items():
        fresh = target.with_name(target.name + ".new")
        fresh.write_text(text)
        os.replace(fresh, target)
    return list(texts)
