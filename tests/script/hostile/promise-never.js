// expects: done
async function f() {
    await new Promise(() => {});
    getContext().getResponse().setBody("not reached");
}
