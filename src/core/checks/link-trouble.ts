/** Reason why an agent cannot reach its server, with advice; commands are in backticks, `at` is the server's URL. */
interface Trouble {
  readonly words: RegExp
  readonly advice: (at: string) => string
}

const hostOf = (url: string) => /^\w+:\/\/(?:\[([^\]]+)\]|([^/:]+))/.exec(url)?.slice(1).find(Boolean) ?? url

/** The first match wins. Matches messages of Node, OpenSSL, and our own server and agent, older ones too. */
const troubles: readonly Trouble[] = [
  {
    words: /^proxy |through the proxy/,
    advice: () => 'check HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the agent',
  },
  {
    words: /ENOTFOUND|EAI_AGAIN/,
    advice: (at) => `the name does not resolve there: \`getent hosts ${hostOf(at)}\``,
  },
  {
    words: /ECONNREFUSED/,
    advice: (at) => `nothing listens at ${at}: is the server up, and the port right?`,
  },
  {
    words: /has expired|CERT_HAS_EXPIRED|not yet valid/,
    advice: () =>
      'check the clock of HOST first (timedatectl); if it is right, the server needs a new certificate',
  },
  {
    words: /self.signed|unable to (verify|get)|UNABLE_TO|DEPTH_ZERO/i,
    advice: () =>
      'trust the certificate: give the agent --ca-file FILE (RSM_CA_FILE), or --tls-fingerprint PIN (RSM_AGENT_TLS_FINGERPRINT) of the server; FILE must contain that certificate or an authority that signed it',
  },
  {
    words: /altname|ALTNAME/,
    advice: (at) =>
      `the certificate is for another name than ${hostOf(at)}: give the agent that name in --url`,
  },
  {
    words: /not the pinned/,
    advice: () =>
      'ask who runs the server whether it has a new certificate; if so give the agent its --tls-fingerprint',
  },
  {
    words: /wrong version number|EPROTO|packet length too long/,
    advice: (at) => `${at} does not speak TLS: should --url begin with http://?`,
  },
  {
    // Messages about enrollment tokens already name the command that creates another.
    words: /enrollment token/,
    advice: () =>
      'replace the old token with the new one (RSM_AGENT_ENROLL_TOKEN_FILE is read again every 5 minutes; otherwise restart the agent)',
  },
  {
    // The next registration attempt tells which of both it was, and what to type.
    words: /or the host removed/,
    advice: () => 'check again in a moment: the server then reports which of the two, and what to do',
  },
  {
    words:
      /\b401\b|\b4401\b|token (is|was) (not valid|revoked)|(needs|requires) (a|an agent) token|not logged in/i,
    advice: () =>
      'its token was revoked: `rsm hosts join --replace HOST` (`rsm hosts join` if the host was removed), then restart the agent with that token',
  },
  {
    words: /\b409\b|\b4409\b|share this identity|the same identity/,
    advice: () =>
      'two agents have this identity (a cloned disk?): stop the other one, empty its data directory, and join it as a new host: `rsm hosts join`',
  },
  {
    words: /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|no answer|silent|timed? ?out/i,
    advice: (at) => `${at} is not reachable: check firewalls and routes; \`curl -m 5 ${at}/api/health\``,
  },
  {
    words: /ECONNRESET|EPIPE|socket hang up/,
    advice: (at) =>
      `the connection is cut in between: by a firewall or proxy, or because ${at} requires https://`,
  },
  {
    words: /\b1006\b|connection was cut/,
    advice: () =>
      'the agent reconnects automatically; if that keeps failing: is the server up, does a firewall or proxy cut long connections?',
  },
  {
    words: /\b(1001|1013|503|429)\b|was shutting down|was overloaded|has ended it|had not heard it/,
    advice: () => 'the server restarts or is overloaded: the agent reconnects automatically',
  },
  {
    words: /answered \d+|Unexpected server response|has not been opened|\b44\d\d\b/,
    advice: (at) => `a proxy in between blocks WebSockets: it must forward Upgrade for ${at}/ws/`,
  },
]

/** Advice for an agent whose link or heartbeat fails for this reason. */
export function linkAdvice(reason: string, url: string): string {
  const known = troubles.find(({ words }) => words.test(reason))
  return known ? known.advice(url) : `does HOST reach the server? \`curl -m 5 ${url}/api/health\``
}
