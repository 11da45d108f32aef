// expects: any
function f() {
    const kept = [];
    for (;;) kept.push(new ArrayBuffer(1e6, { maxByteLength: 1e9 }));
}
