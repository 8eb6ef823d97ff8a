"""A page as people meet it: opened from disk, with all that it says and asks for on the way."""

from contextlib import contextmanager
from types import SimpleNamespace


@contextmanager
def opened(browser, path, *, script=None, silent=(), drawn="html[data-drawn]", **context):
    """The page in a fresh context, with everything it said, asked for or popped up on the way.

    ``script`` runs before its own; requests that begin with one of ``silent`` are not listed; ``drawn`` is what a page
    has when it is complete.
    """
    context.setdefault("viewport", {"width": 1200, "height": 800})
    fresh = browser.new_context(**context)
    fresh.grant_permissions(["clipboard-read", "clipboard-write"])
    page, heard = fresh.new_page(), []
    page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (heard.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: request.url.startswith(silent) or heard.append(f"request: {request.url}"))
    if script:
        page.add_init_script(script)
    page.goto(path.as_uri())
    if drawn is not None and context.get("java_script_enabled", True):
        page.wait_for_selector(drawn)
    yield SimpleNamespace(page=page, heard=heard, path=path)
    fresh.close()


def violations(page, axe):
    """What axe finds with everything unfolded, on a desk and, by night, on a phone; drawings are left out."""
    page.emulate_media(reduced_motion="reduce")  # otherwise colours of the other theme fade while they are checked
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    drawn = "() => [...document.querySelectorAll('.plot')].every(plot => plot.querySelector('.main-svg'))"
    page.wait_for_function(drawn)
    page.evaluate(axe)
    found = []
    for width, theme in ((1200, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 844})
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        told = page.evaluate("axe.run({ exclude: ['.main-svg'] })")["violations"]
        found += [f"{width} {theme} {one['id']}: {one['nodes'][0]['html'][:200]}" for one in told]
    return found


def overflow(page):
    """By how much the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
