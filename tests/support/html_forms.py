"""Pages as a browser without scripts has them: their words, and forms to be filled and sent."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """A page that was answered: its text, its forms, whatever has an id."""

    def __init__(self, answer):
        super().__init__()
        self.status, self.html = answer.status_code, answer.text
        self.forms, self.texts, self.hrefs, self.offered = {}, [], [], {}
        self._form = self._select = None
        self.feed(answer.text)
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "a":
            self.hrefs.append(given.get("href"))
        if tag == "form":
            self._form = self.forms.setdefault(given["action"], {})
        elif tag == "select":
            self._select = given["name"]
            self._form[self._select] = ""
        elif tag == "option":
            self.offered.setdefault(self._select, []).append(given["value"])
            if "selected" in given:
                self._form[self._select] = given["value"]
        elif tag in ("input", "textarea") and self._form is not None:
            name, kind = given["name"], given.get("type")
            if kind in ("radio", "checkbox"):
                self.offered.setdefault(name, []).append(given["value"])
            if kind not in ("radio", "checkbox") or "checked" in given:
                self._form[name] = given.get("value", "")

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None

    def handle_data(self, data):
        self.texts.append(data)

    def form(self, ending):
        """What the form whose address ends so would send as it stands."""
        (found,) = [dict(held) for action, held in self.forms.items() if action.endswith(ending)]
        return found

    def has_form(self, ending):
        return any(action.endswith(ending) for action in self.forms)


class Visit:
    """Somebody who looks at a page, fills a form and sends it."""

    def __init__(self, client, at):
        self._client, self.at = client, at

    def see(self, page="now", **query):
        return Page(
            self._client.get(f"{self.at}/{page}", params=query or None, follow_redirects=True)
        )

    def send(self, page, ending, **values):
        """The page that follows when a form of a page is sent with these values changed."""
        form = page.form(ending) | {name.replace("__", "."): text for name, text in values.items()}
        return self.post(ending, form)

    def post(self, ending, form):
        answer = self._client.post(f"{self.at}/{ending}", data=form, follow_redirects=True)
        return Page(answer)
