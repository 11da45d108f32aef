// expects: any
function f() {
    JSON.parse("[" + "1,".repeat(3e7) + "1]");
}
