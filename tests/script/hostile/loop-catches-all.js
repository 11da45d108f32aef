// expects: stopped
function f() {
    for (;;) {
        try {
            for (;;);
        } catch (e) {}
    }
}
