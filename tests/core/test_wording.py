"""What a task's wording gives away, and what it does not."""

from __future__ import annotations

import pytest

from baton_cli.core.wording import change_folder_edits, closing, outward, sounds_manual


@pytest.mark.parametrize(
    "title",
    [
        "Archive the change", "Archive this OpenSpec change.", "Archive change `add-foo`",
        "Archive the change with `openspec archive`", "openspec archive add-foo",
        "Run `openspec archive add-foo --yes`", "Run `openspec archive add-foo` once merged",
        "After deployment, archive this change", "After merge, run `/opsx:archive`", "/opsx:archive add-foo",
        "Commit, then archive.", "Push the branch", "Push to GitHub and verify that CI passes", "git push",
        "`git push -u origin add-foo`", "Push changes to origin", "Commit and push",
        "Commit all changes and push to the feature branch", "Open a PR", "Open PR for review",
        "Create pull request (#12)", "Create a draft pull request against main", "Submit a merge request",
        "Raise the PR and ask for review", "Merge PR", "Commit, push, and create PR", "归档该变更", "推送代码", "创建 PR",
    ],
)  # fmt: skip
def test_tasks_that_need_the_change_to_be_complete_are_for_people(title: str) -> None:
    assert outward(title)


@pytest.mark.parametrize(
    "title",
    [
        "Push notifications for new messages", "Push state to the store", "Push the error onto the stack",
        "Add a push command", "Push changes to the subscribers", "Push to the queue", "Pushing is retried",
        "Archive old logs", "Archive button is disabled", "Archive changes older than 30 days",
        "Add `openspec archive` support", "Run `openspec archive` against a fixture", "Archived changes",
        "Run the archive tests", "Run `openspec validate add-foo --strict`, then archive the change",
        "Test `/opsx:archive`", "`openspec archive` applies cleanly", "Create PR template", "Open PR comments panel",
        "Create pull request service", "Merge PR data into the model", "Merge the two parsers", "Commit the fixtures",
        "Commit and tag parsing", "Create the archive folder", "Open the archive dialog",
        "After a push, refresh the view", "Print the summary", "Prepare the data", "提交表单",
    ],
)  # fmt: skip
def test_tasks_that_only_speak_of_pushing_or_archiving_are_not(title: str) -> None:
    assert not outward(title)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Update tasks.md", True),
        ("Update the `design.md` with the outcome", True),
        ("Record the decision in `design.md`", True),
        ("Document the limits in openspec/changes/c/specs/x/spec.md", True),
        ("Tick the boxes in this change's tasks.md", True),
        ("Delete openspec/changes/c/design.md", True),
        ("Move openspec/changes/c/design.md to docs", True),
        ("Remove section 2 from proposal.md", True),
        ("edits openspec/changes/c/tasks.md", True),
        ("Remove the words of others from src/design.md", False),
        ("Parse tasks.md files", False),
        ("Implement it as in design.md", False),
        ("Update src/design.md", False),
        ("Update openspec/changes/<name>/tasks.md handling", False),
        ("Record the count (see design.md)", False),
        ("Update docs", False),
    ],
)
def test_asking_to_edit_the_changes_own_folder_is_noticed(text: str, asks: bool) -> None:
    assert change_folder_edits("c")(text) is asks


def test_a_check_is_recognised_behind_tags_and_marks() -> None:
    assert all(closing(title) for title in ("Verify", "**run** it", "[qa] check it", "`test` it", "验证一下"))
    assert not any(closing(title) for title in ("Tests", "Rerun", "", "The check"))


def test_manual_wording_is_at_the_start_or_in_brackets() -> None:
    assert sounds_manual("Manually test it")
    assert sounds_manual("Test it (manual QA)")
    assert not sounds_manual("Add `manual` mode")
    assert not sounds_manual("Replace the manual steps")
    assert not sounds_manual("Manual page: add it")
