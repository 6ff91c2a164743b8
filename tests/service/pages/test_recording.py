"""The recorder, with real key presses in a browser and with input that is not typing."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.keystrokes.key_names import key_name
from keydyn.keystrokes.typing_keys import shortcuts_and_navigation
from keydyn.population.model import PopulationModel
from tests.service.pages.keyboard import KEYS, Keyboard
from tests.service.pages.recorded import PRECISION, names_of, quality_of, sample_of, times_of

# Codes of keys whose names a Python part of keydyn or a US keyboard does not give away.
CODES = {
    "alt": "AltLeft", "caps_lock": "CapsLock", "command": None, "ctrl": "ControlRight",
    "delete": "Delete", "down": "ArrowDown", "end": "End", "home": "Home", "insert": "Insert",
    "left": "ArrowLeft", "num_lock": "NumLock", "page_down": "PageDown", "right": "ArrowRight",
    "up": "ArrowUp", "windows": "MetaLeft",
}  # fmt: skip


def test_every_key_that_the_shipped_population_knows_has_a_physical_key(page):
    known = set(PopulationModel.shipped().parameters.cells.vocabulary.tolist())
    codes = {**{name: code for name, (code, _, _) in KEYS.items()}, **CODES}
    # What the rest of keydyn understands of browsers' names, which it has in lower case.
    browsers = page.evaluate(
        """names => Object.fromEntries(["Backquote", "Backslash", "BracketLeft", "BracketRight", "Equal",
           "ShiftRight"].map(code => [module.keyname(code), code]))"""
    )
    for name, code in browsers.items():
        assert key_name(code) == name
    codes = {**browsers, **codes}
    assert known <= set(codes)
    for name, code in codes.items():
        if code is not None:
            assert page.evaluate("code => module.keyname(code)", code) == name
    assert page.evaluate("module.keyname('IntlRo')") == "intlro"


def test_keystrokes_have_the_rhythm_with_which_they_were_typed(page, keyboard):
    keyboard.tap([*"the", "space", "quote"], hold=73.4, pace=151.7)
    body = sample_of(page)
    assert set(body) == {"keystrokes", "text", "device"}
    assert (body["text"], body["device"]) == ({"kind": "free"}, "keyboard")
    assert names_of(page) == ["t", "h", "e", "space", "quote"]
    for n, (press, release) in enumerate(times_of(page)):
        assert press == pytest.approx(151.7 * n, abs=PRECISION)
        assert release == pytest.approx(151.7 * n + 73.4, abs=PRECISION)
    quality = quality_of(page)
    assert quality["usable"]
    assert quality["remarks"] == []
    assert page.input_value("#text") == "the '"


def test_rollover(page, keyboard):
    keyboard.press("a", 0)
    keyboard.press("shift", 40)
    keyboard.press("b", 90)
    keyboard.release("a", 100)
    keyboard.release("shift", 130)
    keyboard.release("b", 180)
    assert names_of(page) == ["a", "shift", "b"]
    assert times_of(page) == [
        pytest.approx(times, abs=PRECISION) for times in [(0, 100), (40, 130), (90, 180)]
    ]


def test_a_key_that_is_held_down_is_one_keystroke(page, keyboard):
    keyboard.press("a", 0)
    for n in range(5):
        keyboard.press("a", 500 + 30 * n, autoRepeat=True)
    keyboard.release("a", 700)
    assert times_of(page) == [pytest.approx((0, 700), abs=PRECISION)]
    assert quality_of(page)["repeats"] == 5
    assert page.input_value("#text") == "aaaaaa"


def test_a_key_that_is_held_while_the_field_is_left_has_no_release(page, keyboard):
    keyboard.press("a", 0)
    page.focus("button")
    keyboard.release("a", 80)
    page.focus("#text")
    assert quality_of(page)["interruptions"] == 0
    keyboard.tap("b", at=500)
    assert [release is None for _, release in times_of(page)] == [True, False]
    quality = quality_of(page)
    assert (quality["missing_releases"], quality["interruptions"], quality["absences"]) == (1, 1, 0)


def test_a_key_that_was_pressed_elsewhere_is_no_keystroke(page, keyboard):
    page.focus("button")
    keyboard.press("a", 0)
    page.focus("#text")
    keyboard.release("a", 80)
    assert names_of(page) == []
    assert not quality_of(page)["usable"]


def test_a_release_that_was_missed_is_noticed_when_the_key_is_pressed_again(page, keyboard):
    keyboard.press("a", 0)
    keyboard.press("a", 400)
    keyboard.release("a", 470)
    assert times_of(page) == [(0, None), pytest.approx((400, 470), abs=PRECISION)]
    assert quality_of(page)["missing_releases"] == 1


def test_another_tab(page, keyboard):
    keyboard.send("Emulation.setFocusEmulationEnabled", enabled=False)
    keyboard.press("a", 0)
    # Control and T open another tab, which sees their releases.
    keyboard.press("ctrl", 300, modifiers=2)
    keyboard.event("down", "KeyT", 350, modifiers=2)
    other = page.context.new_page()
    other.bring_to_front()
    page.bring_to_front()
    keyboard.tap("b", at=900)
    assert names_of(page) == ["a", "b"]
    quality = quality_of(page)
    assert (quality["missing_releases"], quality["interruptions"], quality["absences"]) == (1, 0, 1)


def test_alt_gr_of_windows_is_one_key(page, keyboard):
    keyboard.press("ctrl", 0, modifiers=2)
    keyboard.event("down", "AltRight", 0, number=18, modifiers=3)
    keyboard.press("q", 60, modifiers=3)
    for n, code in enumerate(("KeyQ", "ControlLeft", "AltRight")):
        keyboard.event("up", code, 120 + n)
    assert names_of(page) == ["altgr", "q"]
    assert quality_of(page)["shortcuts"] == 0


def test_shortcuts_are_no_typing(page, keyboard):
    keyboard.tap("ab")
    # As people press them, with all that a browser does then.
    for keys in (
        "Control+c",
        "Control+Shift+ArrowLeft",
        "Alt+x",
        "Meta+k",
        "Home",
        "ArrowRight",
        "Escape",
        "F2",
    ):
        page.keyboard.press(keys)
    page.keyboard.press("Shift+c")
    assert names_of(page) == ["a", "b", "shift", "c"]
    quality = quality_of(page)
    assert (quality["shortcuts"], quality["navigation"], quality["corrections"]) == (5, 4, 0)
    assert quality["usable"]
    assert "shortcuts were left out" in quality["remarks"]
    page.keyboard.press("Control+Backspace")
    assert quality_of(page)["corrections"] == 1


def test_no_key_is_typing_here_and_not_in_files(page, keyboard):
    """The recorder's rule is that of `pair_events` and of cleaning."""
    letters = [f"Key{letter}" for letter in "AQZ"]
    signs = ["Digit1", "Space", "Comma", "Quote", "Minus", "IntlBackslash", "Numpad5", "NumpadAdd"]
    mending = [
        "Backspace",
        "Delete",
        "Enter",
        "NumpadEnter",
        "CapsLock",
        "ShiftLeft",
        "ShiftRight",
        "AltRight",
    ]
    moving = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown", "Tab"]
    others = ["Insert", "Escape", "ContextMenu", "NumLock", "ScrollLock", "Pause", "PrintScreen", "Fn"]
    modifiers = ["ControlLeft", "ControlRight", "AltLeft", "MetaLeft", "MetaRight"]
    codes = [*letters, *signs, *mending, *moving, *others, *modifiers, *(f"F{n}" for n in range(1, 25))]
    for n, code in enumerate(codes):
        page.focus("#text")
        keyboard.event("down", code, 200 * n)
        keyboard.event("up", code, 200 * n + 60)
    names = np.array([page.evaluate("code => module.keyname(code)", code) for code in codes], dtype=object)
    press = 200.0 * np.arange(len(codes))
    left_out = shortcuts_and_navigation(names, press, press + 60.0, np.zeros(len(codes), dtype=np.int64))
    assert names_of(page) == [*names[~np.logical_or(*left_out)]]
    quality = quality_of(page)
    # Here, modifiers by themselves are not counted.
    assert quality["navigation"] == left_out[1].sum() == len(moving) + len(others) + 24


def test_a_fixed_text_in_which_the_caret_was_moved_was_not_typed_in_one_go(open_page):
    page = open_page("#line", "{text: {kind: 'fixed', name: 'phrase'}}")
    Keyboard(page).tap("ab")
    page.keyboard.press("Tab")
    assert quality_of(page)["usable"]
    page.focus("#line")
    page.keyboard.press("ArrowLeft")
    assert not quality_of(page)["usable"]
    page.evaluate("recorder.clear()")
    Keyboard(page).tap("a")
    assert quality_of(page)["usable"]
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+x")
    assert not quality_of(page)["usable"]
    assert quality_of(page)["corrections"] == 1


def test_a_mac_reports_no_releases_while_command_is_held(open_page):
    page = open_page(
        script="""Object.defineProperty(navigator, "userAgentData", {value: {platform: "macOS"}})"""
    )
    keyboard = Keyboard(page)
    keyboard.tap("a")
    keyboard.event("down", "MetaLeft", 0, number=91, modifiers=4)
    keyboard.event("down", "KeyC", 50, number=67, modifiers=4)
    keyboard.event("up", "MetaLeft", 150)
    # Alt writes characters, and the release of this key means that it is locked no longer.
    keyboard.event("down", "AltLeft", 200, number=18, modifiers=1)
    keyboard.event("down", "KeyL", 250, "@", number=76, modifiers=1)
    keyboard.event("up", "KeyL", 270)
    keyboard.event("up", "AltLeft", 280)
    keyboard.event("down", "CapsLock", 300)
    assert names_of(page) == ["a", "altgr", "l", "caps_lock"]
    assert (quality_of(page)["missing_releases"], quality_of(page)["shortcuts"]) == (1, 1)
    keyboard.tap("c", at=400)
    assert times_of(page)[-1][1] is not None


def test_paste(page, keyboard):
    keyboard.tap("ab")
    for key, command in (("a", "selectAll"), ("c", "copy"), ("v", "paste"), ("v", "paste")):
        keyboard.event("down", f"Key{key.upper()}", 0, modifiers=2, commands=[command])
        keyboard.event("up", f"Key{key.upper()}", 50)
        keyboard.now += 200
    assert page.input_value("#text") == "abab"
    quality = quality_of(page)
    assert quality["pastes"] == 2
    assert "text was pasted" in quality["remarks"]


def test_drop(page, keyboard):
    keyboard.tap("a")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('p'))")
    page.drag_and_drop("p", "#text")
    assert "dragged" in page.input_value("#text")
    assert quality_of(page)["drops"] == 1


def test_undo(page, keyboard):
    keyboard.tap("ab")
    keyboard.event("down", "KeyZ", 0, modifiers=2, commands=["undo"])
    assert quality_of(page)["undos"] == 1


def test_text_that_the_browser_puts_in(open_page):
    # As when it fills in a field, the event does not say how the text came.
    page = open_page("#number")
    Keyboard(page).event("down", "ArrowUp", 0, number=38)
    assert page.input_value("#number") == "1"
    assert quality_of(page)["autofills"] == 1


def test_composition_is_recorded_and_reported(page, keyboard):
    keyboard.tap("a")
    keyboard.send("Input.imeSetComposition", text="k", selectionStart=1, selectionEnd=1)
    keyboard.event("down", "KeyK", 0, number=229, key="Process")
    keyboard.event("up", "KeyK", 70)
    keyboard.send("Input.insertText", text="か")
    assert names_of(page) == ["a", "k"]
    assert quality_of(page)["composed"] == 1
    assert "か" not in str(sample_of(page))


def test_dead_keys(page, keyboard):
    keyboard.event("down", "Backquote", 0, number=192, key="Dead")
    keyboard.event("up", "Backquote", 70, key="Dead")
    assert names_of(page) == ["back_quote"]
    assert quality_of(page)["dead_keys"] == 1


def test_keys_of_a_virtual_keyboard_are_counted_and_not_recorded(page, keyboard):
    for n in range(3):
        keyboard.event("down", "", 100 * n, number=229, key="Unidentified")
        keyboard.send("Input.insertText", text="x")
        keyboard.event("up", "", 100 * n, number=229, key="Unidentified")
    assert page.input_value("#text") == "xxx"
    assert names_of(page) == []
    quality = quality_of(page)
    assert quality["virtual_keys"] == 3
    assert not quality["usable"]


def test_a_page_with_nothing_but_a_touchscreen_is_on_a_phone(open_page):
    assert sample_of(open_page(is_mobile=True, has_touch=True))["device"] == "phone"
    assert sample_of(open_page(options="{device: 'keyboard'}", has_touch=True))["device"] == "keyboard"


def test_events_that_a_script_makes_are_ignored_and_counted(page, keyboard):
    keyboard.tap("a")
    page.evaluate(
        """() => {
            const field = document.querySelector("#text");
            for (const kind of ["keydown", "keyup"]) {
                field.dispatchEvent(new KeyboardEvent(kind, {code: "KeyB", key: "b", bubbles: true}));
            }
            field.dispatchEvent(new InputEvent("input", {inputType: "insertText", data: "b"}));
            field.dispatchEvent(new Event("paste"));
        }"""
    )
    assert names_of(page) == ["a"]
    quality = quality_of(page)
    assert (quality["synthetic"], quality["pastes"]) == (4, 0)


def test_a_password_gives_positions(open_page):
    page = open_page("#password")
    keyboard = Keyboard(page)
    keyboard.tap(["s", "3", "shift", "c", "r"])
    body = sample_of(page)
    assert names_of(page) == ["1", "2", "3", "4", "5"]
    assert body["text"] == {"kind": "positions", "name": "password"}
    assert quality_of(page)["usable"]
    # What is corrected is not typed as it is.
    keyboard.tap(["backspace", "t"])
    assert not quality_of(page)["usable"]


def test_a_password_that_is_shown_or_hidden_stays_one(open_page):
    page = open_page("#password")
    page.evaluate("document.querySelector('#password').type = 'text'")
    page.focus("#password")
    Keyboard(page).tap("ab")
    assert names_of(page) == ["1", "2"]
    page = open_page("#line", "{text: {kind: 'fixed', name: 'pass-phrase'}}")
    Keyboard(page).tap("ab")
    page.evaluate("document.querySelector('#line').type = 'password'")
    assert names_of(page) == ["1", "2"]
    assert sample_of(page)["text"] == {"kind": "positions", "name": "pass-phrase"}


def test_several_fields_are_one_sample(open_page):
    page = open_page("#text, #line")
    keyboard = Keyboard(page)
    keyboard.tap("ab")
    keyboard.press("tab", 0)
    assert page.evaluate("document.activeElement.id") == "line"
    keyboard.release("tab", 90)
    keyboard.tap("c", at=200)
    assert names_of(page) == ["a", "b", "c"]
    assert all(release is not None for _, release in times_of(page))
    page.focus("#number")
    keyboard.tap("1")
    assert names_of(page) == ["a", "b", "c"]


def test_nothing_is_recorded_after_stop(page, keyboard):
    keyboard.tap("a")
    keyboard.press("b", 0)
    page.evaluate("recorder.stop()")
    keyboard.release("b", 60)
    keyboard.tap("c", at=200)
    page.focus("button")
    page.evaluate("document.querySelector('#text').dispatchEvent(new Event('paste'))")
    assert names_of(page) == ["a", "b"]
    assert quality_of(page)["synthetic"] == 0


def test_clear(page, keyboard):
    keyboard.tap("ab")
    page.evaluate("recorder.clear()")
    assert names_of(page) == []
    keyboard.tap("c", at=50)
    assert names_of(page) == ["c"]
    assert times_of(page)[0][0] == 0


def test_callbacks_follow_what_is_typed_even_if_one_of_them_fails(page, keyboard):
    page.evaluate(
        """() => {
            window.seen = []; window.usable = []; window.errors = 0;
            addEventListener("error", () => { errors += 1; });
            recorder.on("keystroke", () => { throw new Error("no"); });
            window.off = recorder.on("keystroke", row => seen.push(row.keyname));
            recorder.on("quality", quality => usable.push(quality.keystrokes));
        }"""
    )
    keyboard.tap("ab")
    page.evaluate("off()")
    keyboard.tap("c")
    assert page.evaluate("[seen, usable, errors]") == [["a", "b"], [1, 2, 3], 3]


def test_only_the_newest_keystrokes_are_kept(open_page):
    # Typed by a script, which only here passes for a person: 5,003 keys take too long otherwise.
    page = open_page()
    page.evaluate(
        """() => {
            const handlers = {};
            const field = new EventTarget();
            field.addEventListener = (kind, handler) => { handlers[kind] = handler; };
            window.recorder = new module.Recorder(field, {text: {kind: "positions", name: "x"}});
            for (let n = 0; n < 5003; n += 1) {
                const event = {isTrusted: true, code: "KeyA", keyCode: 65, key: "a", repeat: false};
                handlers.keydown({...event, timeStamp: 100 * n});
                handlers.keyup({...event, timeStamp: 100 * n + 50});
            }
        }"""
    )
    names = names_of(page)
    assert (len(names), names[0], names[-1]) == (5000, "4", "5003")
    assert quality_of(page)["forgotten"] == 3


@pytest.mark.parametrize("tick", [1.0, 8.0, 1000 / 64, 50 / 3, 0.1])
def test_the_tick_of_a_clock_is_found(page, tick):
    rng = np.random.default_rng(7)
    exact = np.cumsum(rng.lognormal(4.5, 0.4, size=300))
    times = (np.floor(exact / tick) * tick).tolist()
    assert page.evaluate("times => module.clockTick(times)", times) == pytest.approx(tick, rel=0.005)
    assert page.evaluate("times => module.clockTick(times)", exact.tolist()) == 0
    assert page.evaluate("times => module.clockTick(times)", times[:40]) is None


def test_it_listens_to_nothing_but_its_fields(open_page):
    page = open_page(
        script="""window.listened = [];
        const add = EventTarget.prototype.addEventListener;
        EventTarget.prototype.addEventListener = function (kind, ...rest) {
            listened.push([this.id ?? "", rest[1]?.capture, rest[1]?.passive]);
            return add.call(this, kind, ...rest);
        };"""
    )
    Keyboard(page).tap("ab")
    listened = page.evaluate("listened")
    assert listened
    assert all(each == ["text", True, True] for each in listened)
