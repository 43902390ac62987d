/** The page of the browser console; `nonce` is new in every answer. */
export const html = (nonce: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>rsm</title>
    <link rel="icon" type="image/svg+xml" href="console/icon.svg">
    <link rel="stylesheet" href="console/main.css">
    <script type="module" src="console/main.js" nonce="${nonce}"></script>
  </head>
  <body>
    <div id="app"></div>
    <noscript>The console needs JavaScript. The command line and the API do not.</noscript>
  </body>
</html>
`

/**
 * Nothing but what this server sends, and no text that becomes markup (S06, S08). The nonce is for the style sheets that
 * the terminal writes for its own screen; scripts come from files alone.
 */
export const contentSecurityPolicy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
