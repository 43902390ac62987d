/** Why an agent does not get through to its server, and what helps, commands between backticks; `at` is the server's URL. */
interface Trouble {
  readonly words: RegExp
  readonly advice: (at: string) => string
}

const hostOf = (url: string) => /^\w+:\/\/(?:\[([^\]]+)\]|([^/:]+))/.exec(url)?.slice(1).find(Boolean) ?? url

/** The first that fits; by the words of Node, of OpenSSL and of our own server and agent. */
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
      'look at the clock of HOST first (timedatectl); if it is right, the server needs a new certificate',
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
    advice: (at) => `no TLS is spoken at ${at}: should --url begin with http://?`,
  },
  {
    // What the server and the agent say of enrollment tokens says which command makes another.
    words: /enrollment token/,
    advice: () =>
      'replace the old token with the new one (RSM_AGENT_ENROLL_TOKEN_FILE is read again every 5 minutes; any other takes a restart of the agent)',
  },
  {
    // Which of both it was the server says when the agent registers anew, and with what to type.
    words: /or the host removed/,
    advice: () => 'ask again: in a moment the server says which of both, and what helps',
  },
  {
    words: /\b401\b|\b4401\b|token (is|was) (not valid|revoked)|needs (a|an agent) token|not logged in/i,
    advice: () =>
      'its token was revoked: `rsm hosts join --replace HOST` (`rsm hosts join` where the host was removed), then restart the agent with that token',
  },
  {
    words: /\b409\b|\b4409\b|share this identity|the same identity/,
    advice: () =>
      'two agents have this identity (a cloned disk?): stop the other one, empty its data directory, and join it as a host of its own: `rsm hosts join`',
  },
  {
    words: /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|no answer|silent|timed? ?out/i,
    advice: (at) => `no way through to ${at}: look at firewalls and routes; \`curl -m 5 ${at}/api/health\``,
  },
  {
    words: /ECONNRESET|EPIPE|socket hang up/,
    advice: (at) => `the connection is cut on the way: a firewall or proxy, or ${at} wants https://`,
  },
  {
    words: /\b1006\b|connection was cut/,
    advice: () =>
      'the agent tries again by itself; if it stays cut off: is the server up, does a firewall or proxy cut long connections?',
  },
  {
    words: /\b(1001|1013|503|429)\b|was shutting down|was overloaded|has ended it|had not heard it/,
    advice: () => 'the server restarts or is overloaded: the agent comes back by itself',
  },
  {
    words: /answered \d+|Unexpected server response|has not been opened|\b44\d\d\b/,
    advice: (at) => `a proxy in between lets no WebSockets through: it has to pass on Upgrade for ${at}/ws/`,
  },
]

/** What helps an agent whose link or heartbeat fails for this reason. */
export function linkAdvice(reason: string, url: string): string {
  const known = troubles.find(({ words }) => words.test(reason))
  return known ? known.advice(url) : `does HOST reach the server? \`curl -m 5 ${url}/api/health\``
}
