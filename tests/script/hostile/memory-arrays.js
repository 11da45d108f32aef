// expects: stopped
function f() {
    const kept = [];
    for (;;) kept.push(kept.slice());
}
