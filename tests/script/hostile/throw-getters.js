// expects: fault
function f() {
    const e = new Error("x");
    for (const name of ["message", "name", "stack", "number"]) Object.defineProperty(e, name, { get() { throw e; } });
    throw e;
}
