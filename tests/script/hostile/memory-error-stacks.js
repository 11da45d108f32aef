// expects: stopped
function f() {
    const kept = [];
    Error.stackTraceLimit = 1e6;
    for (;;) kept.push(new Error("x".repeat(1000)));
}
