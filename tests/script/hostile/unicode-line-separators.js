// expects: done 1
function f() {
    /*     */ getContext().getResponse().setBody(1);
}
