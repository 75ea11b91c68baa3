// app.ts - the dashboard.
document.body.append("Berth");
