// Light or dark: as the reader chose on this page, else as the system says. Runs before the page is painted.
const theme = {
  system: matchMedia("(prefers-color-scheme: dark)"),
  chosen: null,
  get name() { return this.chosen ?? (this.system.matches ? "dark" : "light"); },
  show() { document.documentElement.dataset.theme = this.name; },
};
theme.show();
