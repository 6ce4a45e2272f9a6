// Before anything is drawn: light or dark as was chosen here, else as the system has it.
try {
  const theme = localStorage.getItem("milepost-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  if (localStorage.getItem("milepost-times") === "exact") document.documentElement.dataset.times = "exact";
} catch (_) { /* Storage may be forbidden. */ }
