// expects: fault
function f() {
    const rows = [];
    getContext().getResponse().setBody(rows);
    for (let i = 0; i < 1e6; i++) rows.push("xxxxxx");
}
