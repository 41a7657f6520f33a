import { nothing } from "./no-such-file";
export default { nothing };
