"""Errors and advice for what users type by mistake."""


def test_a_question_without_its_context_says_how_to_give_it(desk):
    (desk.folder / "two.toml").write_text(
        "graph = 'Age -> Y; \"Length of stay\" -> Y; X -> Y'\nreward = 'Y'\n"
        "context = ['Age', 'Length of stay']\n"
    )
    desk.json("new", "two.db", "two.toml")
    desk.json("ask", "two.db", "-c", "Age=1", "-c", "Length of stay=0")
    refused = desk.fails("ask", "two.db")
    assert "no value for Age, Length of stay: add -c Age=…" in refused
    assert refused.endswith("-c Age=… -c 'Length of stay=…'\n")
    assert refused == desk.fails("ask", "two.db", "-c", "Age=", "-c", "Length of stay=")
    assert desk.fails("status", "two.db", "-c", "Length of stay=1").endswith("-c Age=…\n")
    assert "is not a context variable" in desk.fails(
        "ask", "two.db", "-c", "Age=1", "-c", "Length of stay=0", "-c", "X=1"
    )


def test_a_whole_number_with_a_point_is_that_number(desk):
    (desk.folder / "length.toml").write_text(
        "graph = 'Länge -> Y; X -> Y'\nreward = 'Y'\nnon_manipulable = ['Länge']\n"
        "[domains]\n'Länge' = [2, 3]\nX = ['1', '1.0']\n"
    )
    desk.json("new", "l.db", "length.toml")
    desk.json("ask", "l.db")
    told = desk.json("tell", "l.db", "1", "Länge=3.0", "Y=1.")["values"]
    assert (told["Länge"], told["Y"]) == ("3", "1")
    refused = desk.fails("amend", "l.db", "1", "Länge=3.5", "--reason", "x")
    assert "Länge has no value '3.5'" in refused
    asked = desk.json("ask", "l.db", "--allow", "do(X=1.0)")  # a label of that name comes first
    assert asked["arm"] == {"X": "1.0"}


def test_arms_that_tie_are_all_named(desk):
    desk.begin()
    for context in desk.json("status", "ward.db")["contexts"]:
        assert context["leaders"] == [arm["arm"] for arm in context["arms"]]
        assert context["leader"] in context["leaders"]
    desk.json("ask", "ward.db", "-c", "Age=1", "--allow", "do(Dose=low)")
    desk.json("tell", "ward.db", "1", "Frailty=0", "Recovery=1")
    (one,) = desk.json("status", "ward.db", "-c", "Age=1")["contexts"]
    assert one["leaders"] == [one["leader"]] == ["do(Dose=low)"]


def test_arguments_in_the_wrong_order(desk):
    desk.begin()
    (desk.folder / "past.csv").write_text("Age,Recovery\n1,1\n")
    assert "the store comes first, dowise new" in desk.fails("new", "ward.toml", "ward.db")
    assert "perhaps a store of experiments" in desk.fails("new", "new.db", "ward.db")
    assert "perhaps a store of experiments" in desk.fails("import", "ward.db", "ward.db")
    assert "in a command the store comes first" in desk.fails("import", "past.csv", "ward.db")
    assert "the problem (.toml) comes first" in desk.fails("check", "past.csv", "ward.toml")
    assert "past.csv looks like a table, not a problem" in desk.fails("new", "new.db", "past.csv")


def test_unknown_columns_are_named_all_at_once(desk):
    desk.begin()
    (desk.folder / "past.csv").write_text("Age,Rcovery,Blood,Recovery\n1,1,1,1\n")
    refused = desk.fails("import", "ward.db", "past.csv")
    assert (
        "columns 'Rcovery' (did you mean 'Recovery'?), 'Blood', which are not variables" in refused
    )


def test_errors_as_json_have_a_code(desk):
    desk.begin()
    assert desk.error_code("ask", "ward.db") == "missing-value"
    assert desk.error_code("tell", "ward.db", "first", "Recovery=1") == "invalid-number"
    assert desk.error_code("new", "ward.toml", "ward.db") == "wrong-argument-order"
    assert desk.error_code("erase", "ward.db", "1", "--reason", "asked") == "unknown-decision"
    assert desk.error_code("token", "ward.db", "--revoke", "7") == "unknown-token"
