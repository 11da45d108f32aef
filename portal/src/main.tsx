import { render } from "preact";
import "./style.css";
import { App } from "./views/shell";

render(<App />, document.getElementById("app")!);
