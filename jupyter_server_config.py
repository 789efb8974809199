"""What JupyterLab reads: `make lab` names it, and Binder's postBuild puts it into Jupyter's folder.

JupyterLab does not look into the folder that it is started in.
"""


def as_committed(model: dict, **_: object) -> None:
    """Leave out what JupyterLab writes into each notebook that it only opens, which Python runs it:
    git would show the notebook as changed."""
    if model["type"] == "notebook" and model.get("content"):
        its = model["content"]["metadata"]
        if "language_info" in its:
            its["language_info"] = {"name": its["language_info"].get("name", "python")}


def without_news(_: object, page_config: dict) -> dict:
    """Leave out what asks whoever opens JupyterLab whether she wants news of it; it asks whatever
    the server says of news."""
    page_config.setdefault("disabledExtensions", []).append(
        "@jupyterlab/apputils-extension:announcements"
    )
    return page_config


c = get_config()  # noqa: F821
c.FileContentsManager.pre_save_hook = as_committed
c.ServerApp.tornado_settings = {"page_config_hook": without_news}
# Nobody outside is asked for news of Jupyter.
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
