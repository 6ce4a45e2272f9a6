// Runs before the page is drawn: applies the theme that the user chose, or else that of the system.
try {
  const theme = localStorage.getItem("milepost-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  if (localStorage.getItem("milepost-times") === "exact") document.documentElement.dataset.times = "exact";
} catch (_) { /* Storage may be forbidden. */ }
