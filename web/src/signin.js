// Who is there? A token, pasted.

import { signIn } from "./api.js";
import { h, setText } from "./dom.js";

export function signInForm(done) {
  const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true, spellcheck: "false" });
  const says = h("p", { class: "trouble", role: "alert", hidden: true });
  const button = h("button", { class: "main" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await signIn(input.value.trim());
      done();
    } catch (error) {
      setText(says, error.status === 401 ? "The API server does not take this token." : error.message);
      says.hidden = false;
      button.disabled = false;
      input.focus();
    }
  };
  return h("section", { class: "sign-in" }, h("h1", {}, "Sign in"),
    h("form", { on: { submit } }, h("label", { for: "token" }, "Token"), input, button, says),
    h("p", {}, "The page sees what the token may see, and does what it may do. It is kept in a cookie that scripts cannot read."),
    h("dl", {}, h("dt", {}, "On this machine"), h("dd", {}, h("pre", {}, "cat ~/.sonde/token"), "or the whole address that ", h("code", {}, "sonde up"), " prints."),
      h("dt", {}, "In a cluster"), h("dd", {}, h("pre", {}, "kubectl create token ACCOUNT --duration=8h"), "of a service account that may list the kinds; before Kubernetes 1.24 the token is in the account's Secret.")));
}
