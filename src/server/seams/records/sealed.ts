/** Text sealed with the key file of the server, base64; bound to the record that holds it. */
export type Sealed = string
