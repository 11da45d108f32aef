// expects: stopped
function f() {
    const kept = [];
    for (;;) kept.push(new Uint8Array(1e6).fill(1));
}
