// expects: stopped
function f() {
    getContext().getResponse().setBody({ toJSON() { for (;;); } });
}
