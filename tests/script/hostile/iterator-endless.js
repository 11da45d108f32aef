// expects: stopped
function f() {
    const endless = { [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }) }) };
    new Set(endless);
    Array.from(endless);
}
