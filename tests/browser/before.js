// Runs before the page's own script: keeps what would go to the console, and what the page's policy stopped.
window.complaints = [];
window.addEventListener("error", (event) => window.complaints.push(`error: ${event.message}`));
window.addEventListener("unhandledrejection", (event) => window.complaints.push(`rejected: ${event.reason}`));
document.addEventListener("securitypolicyviolation", (event) => window.complaints.push(`stopped: ${event.blockedURI}`));
for (const level of ["error", "warn"]) console[level] = (...words) => window.complaints.push(`${level}: ${words.join(" ")}`);
