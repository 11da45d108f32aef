// expects: fault Exception = Error: stop
function f() {
    try { getContext().abort(new Error("stop")); } catch (e) {}
    getContext().getResponse().setBody("done");
}
