"use strict";
// The live page: reads server-sent events with fetch, because EventSource cannot send a token in a header.

const MAX_MODELS = 200;
const find = (id) => document.getElementById(id);
const models = new Map();
let token = "";  // in memory only
let stream = null;

function make(tag, content, kind) {
  const element = document.createElement(tag);
  if (content !== undefined) element.textContent = content;
  if (kind) element.className = kind;
  return element;
}

function chosen() {
  return decodeURIComponent(location.hash.slice(1));
}

function tell(text) {
  find("note").textContent = text;
  find("note").hidden = !text;
}

function showTiles(tiles) {
  find("tiles").replaceChildren(...tiles.map((tile) => {
    const item = make("li", undefined, tile.kind);
    item.id = `tile-${tile.id}`;
    item.append(make("b", tile.value), make("small", tile.label));
    return item;
  }));
}

function showSuspects(columns, suspects) {
  const names = ["row", "clean probability", "observed", "predicted", ...columns];
  find("columns").replaceChildren(...names.map((name, place) => make("th", name, place === 4 ? "begin" : "")));
  find("suspects").replaceChildren(...suspects.map((cells) => {
    const row = make("tr");
    row.append(...cells.map((cell, place) => {
      if (place === 0) return make("th", cell);
      const data = make("td", place === 1 ? undefined : cell, place === 4 ? "begin" : "");
      if (place === 1) data.append(make("span", cell, "chip"));
      return data;
    }));
    return row;
  }));
  find("none").hidden = suspects.length > 0;
  find("suspects").closest(".table").hidden = suspects.length === 0;
}

function showFigures(figures) {
  const place = find("figures");
  for (const figure of figures) {
    let card = find(`figure-${figure.name}`);
    if (!card) {
      card = make("section", undefined, "card");
      card.id = `figure-${figure.name}`;
      card.append(make("h3"), make("p", "", "caption"), make("figure"));
      const scroll = make("div", undefined, "scroll");
      scroll.tabIndex = 0;
      card.lastChild.append(scroll, make("figcaption"));
      place.append(card);
    }
    card.querySelector("h3").textContent = figure.title;
    card.querySelector(".caption").textContent = figure.caption;
    const parsed = new DOMParser().parseFromString(figure.svg, "text/html");
    card.querySelector(".scroll").replaceChildren(document.adoptNode(parsed.body.firstChild));
    card.querySelector("figcaption").replaceChildren(...Object.entries(figure.legend).map(([kind, meaning]) => {
      const key = make("span", undefined, "key");
      key.append(make("i", undefined, kind), meaning);
      return key;
    }));
  }
  const names = figures.map((figure) => `figure-${figure.name}`);
  for (const card of [...place.children]) if (!names.includes(card.id)) card.remove();
}

function showModels(broken, current) {
  const wanted = find("filter").value.toLowerCase();
  const names = [...models.keys(), ...Object.keys(broken)].filter((name) => name.toLowerCase().includes(wanted)).sort();
  find("models").replaceChildren(...names.slice(0, MAX_MODELS).map((name) => {
    const row = make("tr");
    const head = make("th", undefined, "text");
    if (Object.hasOwn(broken, name)) {
      head.textContent = name;
      const why = make("td", broken[name], "text");
      why.colSpan = 4;
      row.append(head, why);
      return row;
    }
    const model = models.get(name);
    const link = make("a", name);
    link.href = `#${encodeURIComponent(name)}`;
    head.append(link);
    row.append(head, make("td", model.records), make("td", model.rate), make("td", model.suspects), make("td", model.loss));
    if (name === current) row.setAttribute("aria-current", "true");
    row.addEventListener("click", () => { location.hash = encodeURIComponent(name); });
    return row;
  }));
  find("search").hidden = models.size <= 20;
  find("more").hidden = names.length <= MAX_MODELS;
  find("more").textContent = `${names.length - MAX_MODELS} more.`;
}

function show(event) {
  for (const model of event.models) models.set(model.name, model);
  for (const name of event.gone) models.delete(name);
  const model = event.model;
  find("main").hidden = false;
  showModels(event.broken, model ? model.name : "");
  find("newest").hidden = !model;
  if (!model) {
    find("title").textContent = "redescend serve";
    find("result").textContent = chosen() ? `There is no model '${chosen()}'.` : "The server has no models.";
    showTiles([]);
    showFigures([]);
    return;
  }
  document.title = `${model.name} · redescend serve`;
  find("title").textContent = model.name;
  find("result").textContent = model.result;
  showTiles(model.tiles);
  showSuspects(model.columns, model.suspects);
  showFigures(model.figures);
}

async function read(signal) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const query = chosen() ? `?model=${encodeURIComponent(chosen())}` : "";
  const response = await fetch(`events${query}`, { headers, signal, cache: "no-store" });
  if (response.status === 401) {
    find("result").textContent = token ? "The token is wrong." : "";
    find("ask").hidden = false;
    find("token").focus();
    token = "";
    return false;
  }
  if (!response.ok) throw new Error((await response.json()).error);
  find("ask").hidden = true;
  tell("");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return true;
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) show(JSON.parse(part.slice(6)));
  }
}

async function run() {
  if (stream) stream.abort();
  const mine = stream = new AbortController();
  models.clear();
  while (mine === stream) {
    try {
      if (!await read(mine.signal)) return;
      tell("The server has ended the connection; trying again.");
    } catch (error) {
      if (mine !== stream) return;
      tell(`The server does not answer; trying again. ${error.message}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

find("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  token = find("token").value;
  find("token").value = "";
  run();
});
window.addEventListener("hashchange", run);
run();
