// Adds new mails to the page. The mails that are there stay the same elements, with their selection and focus.
const list = document.querySelector("#mails");
const ids = (from) => new Map([...from.querySelectorAll("article")].map((mail) => [mail.id, mail]));

async function refresh() {
  if (document.hidden) return;
  const answer = await fetch("/");
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const old = ids(list), now = ids(page);
  document.title = page.title;
  document.querySelector("#count").textContent = page.querySelector("#count").textContent;
  const empty = page.querySelector(".empty"), wasEmpty = list.querySelector(".empty");
  if (wasEmpty && !empty) wasEmpty.remove();
  if (empty && !wasEmpty) list.replaceChildren(empty);
  // An id with a different arrival is a mail of a later start.
  const time = (mail) => mail.querySelector("time").dateTime;
  for (const [id, mail] of old) if (!now.has(id) || time(now.get(id)) !== time(mail)) mail.remove();
  for (const [id, mail] of [...now].reverse()) if (!document.getElementById(id)) list.prepend(mail);
}

setInterval(() => refresh().catch(() => {}), 2000); // the mailbox may be away for a while
