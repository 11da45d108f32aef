// expects: stopped
function f() {
    const kept = [];
    for (;;) {
        try {
            kept.push(new Array(1e6).fill(1));
        } catch (e) {}
    }
}
