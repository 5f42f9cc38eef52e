"""Pages as a browser without scripts sees them: texts, links and forms."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Text, links, forms and offered values of a response."""

    def __init__(self, response):
        super().__init__()
        self.status, self.html = response.status_code, response.text
        self.forms, self.texts, self.hrefs, self.offered = {}, [], [], {}
        self._form = self._select = None
        self.feed(response.text)
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "a":
            self.hrefs.append(attributes.get("href"))
        if tag == "form":
            self._form = self.forms.setdefault(attributes["action"], {})
        elif tag == "select":
            self._select = attributes["name"]
            self._form[self._select] = ""
        elif tag == "option":
            self.offered.setdefault(self._select, []).append(attributes["value"])
            if "selected" in attributes:
                self._form[self._select] = attributes["value"]
        elif tag in ("input", "textarea") and self._form is not None:
            name, kind = attributes["name"], attributes.get("type")
            if kind in ("radio", "checkbox"):
                self.offered.setdefault(name, []).append(attributes["value"])
            if kind not in ("radio", "checkbox") or "checked" in attributes:
                self._form[name] = attributes.get("value", "")

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None

    def handle_data(self, data):
        self.texts.append(data)

    def form(self, ending):
        """Return the fields of the form whose action has this ending."""
        (fields,) = [form for action, form in self.forms.items() if action.endswith(ending)]
        return dict(fields)

    def has_form(self, ending):
        return any(action.endswith(ending) for action in self.forms)


class Visit:
    """A user who opens pages below a URL, fills forms and sends them."""

    def __init__(self, client, url):
        self._client, self.url = client, url

    def get(self, page="now", **query):
        url = f"{self.url}/{page}"
        return Page(self._client.get(url, params=query or None, follow_redirects=True))

    def send(self, page, ending, **values):
        """Send a form of a page with some values changed, and return the next page."""
        form = page.form(ending) | {name.replace("__", "."): text for name, text in values.items()}
        return self.post(ending, form)

    def post(self, ending, form):
        url = f"{self.url}/{ending}"
        return Page(self._client.post(url, data=form, follow_redirects=True))
