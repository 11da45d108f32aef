// expects: stopped
function f() {
    try {
        for (;;);
    } finally {
        for (;;);
    }
}
