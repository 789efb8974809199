"""What JupyterLab reads: `make lab` names it, and Binder's postBuild puts it into Jupyter's folder.

JupyterLab does not look into the folder that it is started in.
"""

import os
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir

from casebook import places


def as_committed(model: dict, **_: object) -> None:
    """Leave out what JupyterLab writes into each notebook that it only opens.

    It notes which Python runs the notebook, so that git would show it as changed.
    """
    if model["type"] == "notebook" and model.get("content"):
        its = model["content"]["metadata"]
        if "language_info" in its:
            its["language_info"] = {"name": its["language_info"].get("name", "python")}


def without_news(_: object, page_config: dict) -> dict:
    """Leave out what asks each new user of JupyterLab whether she wants news of it.

    It asks whatever the server says of news.
    """
    page_config.setdefault("disabledExtensions", []).append(
        "@jupyterlab/apputils-extension:announcements"
    )
    return page_config


c = get_config()  # noqa: F821
c.FileContentsManager.pre_save_hook = as_committed
c.ServerApp.tornado_settings = {"page_config_hook": without_news}
# Nobody outside is asked for news of Jupyter.
c.LabApp.news_url = None
# Solutions that are folded, links to findings, guesses that are kept.
c.LabApp.extra_labextensions_path = [str(places.JUPYTERLAB)]
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"

# Where nobody can write into the home, what is kept there is kept here; kernels hear of it too.
try:
    Path(jupyter_runtime_dir()).mkdir(parents=True, exist_ok=True)
except OSError:
    own = Path.cwd() / places.LOCAL_NAME / "jupyter"
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    names += ("IPYTHONDIR", "MPLCONFIGDIR")
    os.environ.update((name, str(own / name.lower())) for name in names)
    c.LabApp.user_settings_dir = str(own / "settings")
    c.LabApp.workspaces_dir = str(own / "workspaces")
