/** This package's version; a test keeps it equal to package.json's, which the executable does not carry. */
export const toolVersion = "0.1.0";
