// Starts the dashboard: who is reading, which page they want, and the frame around it.

import { getSession, signOut } from "./api.js";
import { showCreatePage } from "./create_page.js";
import { el } from "./dom.js";
import { readRoute } from "./router.js";
import { showSignIn } from "./sign_in.js";
import { showStudiesPage } from "./studies_page.js";
import { showStudyPage } from "./study_page.js";

const main = document.getElementById("main");
const account = document.getElementById("account");
const footer = document.getElementById("footer");

let session = null;
let moved = false; // the first page leaves the focus at the top, others put it on their heading
let leavePage = new AbortController();

/** What pages may use of the frame. */
function makeFrame(signal) {
  return {
    session,
    signal,
    setTitle(title) {
      document.title = title === "" ? "polyarm" : `${title} · polyarm`;
    },
    canManage: canManage(),
    /** Puts an error in the place of the page, and the sign-in form if that is what it takes. */
    fail(error) {
      if (signal.aborted) return; // somebody has gone on to another page
      leavePage.abort();
      main.replaceChildren(describeFailure(error));
      main.querySelector("h1").focus({ preventScroll: true });
      if (error.status === 401) askToSignIn();
    },
  };
}

function describeFailure(error) {
  return el(
    "div",
    { class: "stack" },
    el("h1", { tabindex: "-1" }, error.title ?? "Something broke"),
    el("p", { class: "notice error", role: "alert" }, error.message),
    el("p", {}, el("a", { href: "#/" }, "All studies")),
  );
}

/** After a session has ended: the form, if the server agrees that it has; else the error stays. */
async function askToSignIn() {
  try {
    await loadSession();
  } catch {
    return;
  }
  if (mustSignIn()) await showRoute();
}

async function showRoute() {
  leavePage.abort();
  leavePage = new AbortController();
  const { signal } = leavePage;
  const route = readRoute(location.hash);
  const frame = makeFrame(signal);
  markNavigation(route.page);
  scrollTo(0, 0);
  try {
    if (mustSignIn()) showSignIn(main, frame, start);
    else if (route.page === "list") await showStudiesPage(main, frame);
    else if (route.page === "new") await showCreatePage(main, frame);
    else if (route.page === "study") await showStudyPage(main, frame, route.id);
    else frame.fail({ title: "No such page", message: "This address leads nowhere." });
  } catch (error) {
    frame.fail(error);
  }
  if (!signal.aborted && moved) main.querySelector("h1")?.focus({ preventScroll: true });
  moved = true;
}

function canManage() {
  return session.open || session.scopes.includes("admin");
}

function mustSignIn() {
  return !session.open && !session.signed_in;
}

function markNavigation(page) {
  for (const link of document.querySelectorAll("[data-nav]")) {
    const current = link.dataset.nav === page;
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.hidden = mustSignIn() || (link.dataset.nav === "new" && !canManage());
  }
}

function showAccount() {
  if (session.open) {
    account.replaceChildren(el("span", {}, "no tokens: this server listens on this machine only"));
  } else if (session.signed_in) {
    const leave = async () => {
      await signOut().catch(() => {}); // signed out already: the session tells
      start();
    };
    account.replaceChildren(
      el("span", {}, `signed in as ${session.name ?? "somebody"} (${session.scopes.join(", ")})`),
      el("button", { class: "button", type: "button", on: { click: leave } }, "Sign out"),
    );
  } else {
    account.replaceChildren();
  }
  const parts = [`polyarm ${session.version ?? ""}`, session.storage].filter(Boolean);
  footer.textContent = parts.join(" · ");
}

async function loadSession() {
  session = await getSession();
  showAccount();
}

async function start() {
  try {
    await loadSession();
    await showRoute();
  } catch (error) {
    main.replaceChildren(describeFailure(error));
  }
}

// The skip link must not change the address: that is where the routes are.
document.getElementById("skip-link").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => session !== null && showRoute());
start();
