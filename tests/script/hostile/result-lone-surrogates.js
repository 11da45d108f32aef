// expects: done "\ud800x\udc00"
function f() {
    getContext().getResponse().setBody("\ud800x\udc00");
}
