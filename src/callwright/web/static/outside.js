// What is shown instead of a page: how to sign in, or that there is no such page.
import { html } from "./vendor.js";
import { token } from "./api.js";
import { show } from "./text.js";

export default function Outside({ url, known }) {
  return known ? html`<${SignIn} />` : html`<${Missing} path=${url.pathname} />`;
}

function SignIn() {
  return html`<div class="empty" role="alert"><p class="title">${token() ? "The token of this browser is not the server's" : "This browser has no token"}</p>
    <p>Open the link that <code>callwright web</code> printed: it ends in <code>#token=…</code>. A new token is made each time the server starts.
    In a terminal session, <code>/web</code> prints the link again.</p></div>`;
}

function Missing({ path }) {
  return html`<div class="empty"><p class="title">There is no page ${show(path)}</p><p><a href="/">All sessions</a></p></div>`;
}
