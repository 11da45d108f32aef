// expects: done [null,"undefined"]
function f() {
    function caller() { return caller.caller; }
    let found = null;
    try { found = caller().caller; } catch (e) {}
    getContext().getResponse().setBody([found, typeof host]);
}
