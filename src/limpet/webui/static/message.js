// One message of a conversation. Everything in it is made of elements and text: no HTML is ever parsed.
import { h } from "vue";

const LINKS = /^(https?:\/\/|mailto:)/i;
const STYLES = { b: "strong", i: "em", s: "s", c: "code" };

function bit(one) {
  let node = one.t;
  for (const flag of one.f || "") node = h(STYLES[flag], node);
  if (one.l && LINKS.test(one.l)) return h("a", { href: one.l, target: "_blank", rel: "noopener noreferrer" }, [node]);
  return node;
}

const bits = (list) => (list || []).map(bit);
const nodes = (list, self) => (list || []).map((one, place) => block(one, self, place));

function block(node, self, key) {
  switch (node.k) {
    case "h":
      return h(`h${Math.min(6, (node.level || 1) + 2)}`, { key }, bits(node.bits));
    case "code":
      return code((node.bits || []).map((one) => one.t).join(""), node.info, self, key);
    case "hr":
      return h("hr", { key });
    case "quote":
      return h("blockquote", { key }, nodes(node.nodes, self));
    case "ul":
    case "ol":
      return h(node.k, { key, start: node.start }, nodes(node.nodes, self));
    case "li":
      return h("li", { key }, nodes(node.nodes, self));
    case "table": {
      const [head, ...rows] = node.rows || [];
      const cells = (row, tag) => h("tr", (row || []).map((cell) => h(tag, bits(cell))));
      const table = h("table", [h("thead", [cells(head, "th")]), h("tbody", rows.map((row) => cells(row, "td")))]);
      return h("div", { key, class: "lp-wide", tabindex: 0, role: "region", "aria-label": self.labels.table }, [table]);
    }
    default:
      return h("p", { key }, bits(node.bits));
  }
}

function code(text, info, self, key) {
  const head = h("div", { class: "lp-code-head" }, [
    h("span", info || self.labels.code),
    h("button", { type: "button", class: "lp-small", onClick: () => self.copy(text) }, self.labels.copy),
  ]);
  const body = h("pre", { tabindex: 0, "aria-label": self.labels.code }, [h("code", text)]);
  return h("div", { key, class: "lp-code" }, [head, body]);
}

function plain(title, text, self) {
  if (!text) return null;
  return h("div", { class: "lp-part" }, [h("div", { class: "lp-part-title" }, title), code(text, " ", self)]);
}

function diff(text, self) {
  if (!text) return null;
  const lines = text.split("\n").map((one, key) => {
    const kind = one.startsWith("+") ? "add" : one.startsWith("-") ? "del" : one.startsWith("@@") ? "at" : "";
    return h("span", { key, class: kind && `lp-${kind}` }, one + "\n");
  });
  const body = h("pre", { class: "lp-diff", tabindex: 0, "aria-label": self.labels.diff }, lines);
  return h("div", { class: "lp-part" }, [h("div", { class: "lp-part-title" }, self.labels.diff), body]);
}

function lasted(ms) {
  if (!ms) return "";
  return ms < 1000 ? `${ms} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60000)} min`;
}

function card(one, self) {
  const state = one.state || "waiting";
  const brief = (one.arguments || "").replace(/\s+/g, " ").slice(0, 120);
  const summary = h("summary", [
    h("span", { class: `lp-state lp-state-${state}` }, self.labels[state]),
    h("span", { class: "lp-tool" }, one.name),
    h("span", { class: "lp-brief" }, brief),
    h("span", { class: "lp-time" }, lasted(one.duration)),
  ]);
  return h("details", { key: one.call, class: "lp-card" }, [
    summary,
    plain(self.labels.arguments, one.arguments, self),
    diff(one.diff, self),
    plain(self.labels.output, one.output || self.progress[one.call], self),
    ...(one.images || []).map((blob) => picture({ blob, name: one.name }, self)),
  ]);
}

const address = (file) => `${window.path_prefix || ""}/files/${file.blob}?name=${encodeURIComponent(file.name || "")}`;

function picture(file, self) {
  const image = h("img", { src: address(file), alt: file.name || self.labels.image, loading: "lazy" });
  return h("a", { class: "lp-picture", href: address(file), target: "_blank", rel: "noopener" }, [image]);
}

function attached(file, self) {
  if (file.is_image) return picture(file, self);
  return h("a", { class: "lp-file", href: address(file), download: file.name, target: "_blank" }, file.name);
}

function when(at) {
  const date = new Date(at);
  const today = new Date().toDateString() === date.toDateString();
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return today ? time : `${date.toLocaleDateString()} ${time}`;
}

export default {
  props: { item: Object, labels: Object, progress: { type: Object, default: () => ({}) }, readonly: Boolean },
  methods: {
    async copy(text) {
      try {
        await navigator.clipboard.writeText(text);
        this.$emit("act", { act: "copied", id: this.item.id });
      } catch (error) {
        this.$emit("act", { act: "uncopied", id: this.item.id });
      }
    },
    act(name) {
      if (name === "copy") this.copy(this.item.text || "");
      else this.$emit("act", { act: name, id: this.item.id });
    },
  },
  render() {
    const item = this.item;
    const who = item.who || this.labels[`who_${item.kind}`] || "";
    if (item.kind === "divider") return h("div", { class: "lp-divider", role: "note" }, item.text);
    if (item.kind === "note" || item.kind === "summary") {
      const inside = item.blocks ? nodes(item.blocks, this) : [h("div", { class: "lp-plain" }, item.text)];
      return h("details", { class: "lp-aside" }, [h("summary", who), ...inside]);
    }
    const acts = (item.acts || [])
      .filter((name) => !this.readonly || name === "copy" || name === "fork")
      .map((name) =>
        h("button", { type: "button", class: "lp-small", onClick: () => this.act(name) }, this.labels[name])
      );
    const label = item.label ? [h("span", { class: "lp-label" }, item.label)] : [];
    const head = h("header", [h("strong", who), h("time", when(item.at)), ...label, h("span", { class: "lp-acts" }, acts)]);
    const parts = [head];
    if (item.thinking) {
      parts.push(
        h("details", { class: "lp-aside" }, [
          h("summary", this.labels.thinking),
          h("div", { class: "lp-plain" }, item.thinking),
        ])
      );
    }
    if (item.kind === "user") parts.push(h("div", { class: "lp-plain" }, item.text));
    else if (item.blocks) parts.push(h("div", { class: "lp-rich" }, nodes(item.blocks, this)));
    parts.push(...(item.files || []).map((file) => attached(file, this)));
    parts.push(...(item.cards || []).map((one) => card(one, this)));
    if (item.meta) parts.push(h("footer", item.meta));
    const live = item.is_live ? " lp-live" : "";
    return h("article", { class: `lp-message lp-${item.kind}${live}`, "aria-label": who, "data-id": item.id }, parts);
  },
};
