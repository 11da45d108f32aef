// expects: stopped
function f() {
    outer: for (;;) {
        for (;;) continue outer;
    }
}
