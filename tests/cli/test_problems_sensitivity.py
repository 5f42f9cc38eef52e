"""`dowise sensitivity`: what the prior changes, before any data and after them."""


def test_before_any_data(cli):
    text = cli.run_text("sensitivity", "task2")
    assert "C=0" in text and "C=1" in text and "no prior tells the arms apart" in text
    assert "After" not in text
    document = cli.run_json("sensitivity", "task2", "-c", "C=1")
    assert document["after"] is None and document["records"] is None
    assert [stage["prior"] for stage in document["before"]] == ["flat", "0.5", "pooled"]
    assert all(len(stage["contexts"]) == 1 for stage in document["before"])


def test_after_data(cli):
    cli.write("records.csv", "arm,C,Z,X1,X2,Y\ndo(X1=1),1,0,1,1,1\ndo(X2=0),0,1,1,0,0\n")
    text = cli.run_text("sensitivity", "task2", "records.csv", "-c", "C=1")
    assert "Before any data no prior tells the arms apart." in text
    assert "After 2 records every prior recommends do(X2=1)." in text
    document = cli.run_json("sensitivity", "task2", "records.csv")
    assert document["records"] == 2 and document["agree"] == [True, True]


def test_bad_rows_are_named(cli):
    cli.write("records.csv", "arm,C,Y\ndo(X1=1),1,1\ndo(X1=1),7,1\n")
    assert cli.error_code("sensitivity", "task2", "records.csv") == "bad-rows"


def test_the_recommended_arm_is_marked(cli):
    cli.write("records.csv", "arm,C,Z,X1,X2,Y\ndo(X1=1),1,0,1,1,1\ndo(X2=0),0,1,1,0,0\n")
    before, after = cli.run_text("sensitivity", "task2", "records.csv", "-c", "C=1").split("After")
    assert "recommended" not in before
    assert after.count(" recommended") == 3 and "do(X2=1)" in after


def test_records_that_are_not_used_are_named(cli):
    cli.write("none.csv", "arm,C,Y\n" + "do(X1=1),1,1\n" * 3)
    note = "None of 3 records could be used for Y: the table has no column X2."
    assert note in cli.run_text("sensitivity", "task2", "none.csv")
    assert cli.run_json("sensitivity", "task2", "none.csv")["notes"] == [note]
    assert note in cli.run_text("check", "task2", "none.csv")
    cli.write("some.csv", "arm,C,Z,X1,X2,Y\ndo(X1=1),1,0,1,1,1\ndo(X1=1),1,,1,1,1\n")
    notes = cli.run_json("sensitivity", "task2", "some.csv")["notes"]
    assert "Y was left out of 1 record: Z was not seen." in notes


def test_a_table_without_rows(cli):
    cli.write("empty.csv", "arm,C,Z,X1,X2,Y\n")
    text = cli.run_text("sensitivity", "task2", "empty.csv")
    assert "There are no records: the table has no rows." in text and "After" not in text
